/*
 * Signals that end a command, with exit status 130: at once, or, when it watches for them, after it
 * has saved. Ctrl-C, SIGTERM, SIGHUP and SIGPIPE ask it to save and leave; Ctrl-C after any of them
 * ends it at once.
 */
#ifndef LOCKSTEP_CLI_INTERRUPT_H
#define LOCKSTEP_CLI_INTERRUPT_H

/* From now on Ctrl-C and SIGTERM end the command. */
void interrupt_leaves(void);

/* From now on they are noted instead. `name` is who speaks when Ctrl-C ends the command at once:
 * "lockstep train". */
void interrupt_watch(const char *name);

/* The signal that came: "Ctrl-C", "SIGTERM", "SIGHUP", "SIGPIPE"; NULL: none did. */
const char *interrupt_came(void);

#endif
