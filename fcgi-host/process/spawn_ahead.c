/*
 * Processes that wait for their request, seen from the relay: adopted, ready,
 * handed over.
 */
#include "process/spawn_private.h"

int process_adopt(struct process *process, const struct process *zygote, pid_t pid, const struct spawn_request *request, struct err *err)
{
	struct spawner *spawner = zygote == NULL ? NULL : zygote->spawner;
	struct spawn_message message = {
		.ask = {
			.kind = SPAWN_ASK_ADOPT, .handler = request->handler, .generation = request->generation, .ahead = SPAWN_PARKED,
			.is_prompt = true, .pid = pid, .fds = 1u << SPAWN_FD_OTHER_END },
		.fds = { request->control_fds[1] },
	};

	if (zygote == NULL || !spawner_has(spawner, zygote))
		return err_set(err, "the zygote is gone");
	return spawner_begin(spawner, process, zygote->id % spawner->links_count, &message, err);
}

void process_set_ready(struct process *process)
{
	struct spawn_message message = { .ask = { .id = process->id, .kind = SPAWN_ASK_READY } };

	if (spawner_has(process->spawner, process))
		spawn_link_send(spawner_link_of(process->spawner, process->id), &message);
}

int process_hand_over(struct process *process, const struct bytes *environ, struct err *err)
{
	struct spawn_message message = {
		.ask = { .id = process->id, .kind = SPAWN_ASK_HAND_OVER, .environ_len = (uint32_t)environ->len },
		.environ = bytes_data(environ) };
	int errnum;

	if (!spawner_has(process->spawner, process))
		return err_set(err, "the process is gone");
	errnum = spawn_link_send(spawner_link_of(process->spawner, process->id), &message);
	return errnum == 0 ? 0 : err_set_errno(err, errnum, "cannot reach the spawner");
}
