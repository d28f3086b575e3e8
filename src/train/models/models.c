/* The table of Lockstep's own models. The first is what `lockstep train` trains when nobody says. */
#include "train/models/models.h"

#include <string.h>

#include "train/model.h"

static const ls__model_kind kinds[] = {
    { "cnn", "a convolution and two dense layers, for images of 28 x 28", ls__cnn },
    { "cnn2", "two convolutions and two dense layers, for images of 28 x 28", ls__cnn2 },
    { "mlp", "two hidden layers of 2048, for images of 28 x 28", ls__mlp },
    { "resnet", "ResNet-20 with batch norm, for images of 28 x 28", ls__resnet },
    { "gpt", "a language model over bytes: 4 layers, width 256, 8 heads, context 128", ls__gpt },
};
enum { KINDS = sizeof kinds / sizeof *kinds };

const char *ls_model_known(int i, const char **what)
{
    bool known = i >= 0 && i < KINDS;
    if (what)
        *what = known ? kinds[i].what : NULL;
    return known ? kinds[i].name : NULL;
}

static void unknown(const char *name)
{
    char names[128] = "";
    for (int i = 0; i < KINDS; i++) {
        if (strlen(names) + strlen(kinds[i].name) + 3 > sizeof names)
            break;
        strcat(strcat(names, names[0] ? ", " : ""), kinds[i].name);
    }
    ls__hint(ls__fail(LS_NOT_FOUND, "there is no model '%s'", name), "the models are: %s", names);
}

ls_model *ls_model_named(const char *name)
{
    if (!name) {
        ls__fail(LS_INVALID, "ls_model_named: the name is NULL");
        return NULL;
    }
    for (int i = 0; i < KINDS; i++)
        if (!strcmp(kinds[i].name, name)) {
            ls_model *m = kinds[i].make(kinds[i].name, kinds[i].what);
            if (!m || !m->lacks)
                return m;
            ls_model_free(m);
            return NULL;
        }
    unknown(name);
    return NULL;
}
