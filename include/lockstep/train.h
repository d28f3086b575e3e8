/*
 * train.h: training a model: all that is needed, in the order in which it is met.
 *
 * How to use it
 *
 *     ls_strategy *s = ls_mirrored(LS_MIRRORED(.devices = "/cpu:0,/cpu:1"));
 *     ls_model *m = ls_model_new(LS_MODEL(.name = "small", .input = "f32[28,28,1]"));
 *     ls_conv_layer(m, LS_CONV_LAYER(.filters = 32, .activation = ls_relu));
 *     ls_max_pool_layer(m, 2);
 *     ls_flatten_layer(m);
 *     ls_dense_layer(m, LS_DENSE_LAYER(.units = 10));
 *
 *     ls_trainer *t = ls_trainer_new(LS_TRAINER(.strategy = s, .model = m, .optimizer = ls_adam(NULL)));
 *     ls_fit(t, LS_FIT(.data = batches("train"), .test = batches("test"), .epochs = 10));
 *     printf("accuracy %.4f\n", ls_trainer_value(t, "test_accuracy"));
 *
 *     ls_trainer_free(t);                       // and the model and optimizer it was given
 *     ls_strategy_free(s);
 *     if (ls_error_pending())
 *         fprintf(stderr, "%s\n", ls_error_report());
 *
 * model.h (layers and models), loss.h, metric.h, optimizer.h, fit.h (fit, evaluate, predict, callbacks),
 * checkpoint.h (saving and going on), events.h (TensorBoard), profile.h (where the time goes). Who
 * wants a loop of his own takes what he likes of them: examples/custom_loop.c.
 */
#ifndef LOCKSTEP_TRAIN_H
#define LOCKSTEP_TRAIN_H

#include <lockstep/checkpoint.h>
#include <lockstep/events.h>
#include <lockstep/fit.h>
#include <lockstep/loss.h>
#include <lockstep/metric.h>
#include <lockstep/model.h>
#include <lockstep/optimizer.h>
#include <lockstep/profile.h>
#include <lockstep/safetensors.h>

#endif
