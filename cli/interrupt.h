/*
 * Ctrl-C, SIGTERM, SIGHUP: the first asks a command to save and leave, the second ends it at once.
 */
#ifndef LOCKSTEP_CLI_INTERRUPT_H
#define LOCKSTEP_CLI_INTERRUPT_H

/* From now on. `name` is who speaks when a second signal ends the command: "lockstep train". */
void interrupt_watch(const char *name);

/* The signal that came: "Ctrl-C", "SIGTERM", "SIGHUP", "SIGPIPE"; NULL: none did. */
const char *interrupt_came(void);

#endif
