/*
 * Processes that wait for their request, seen from the relay: adopted, ready.
 */
#include "process/spawn_private.h"

int process_adopt(struct process *process, const struct process *zygote, pid_t pid, const struct spawn_request *request, struct err *err)
{
	struct spawner *spawner = zygote == NULL ? NULL : zygote->spawner;
	struct spawn_message message = {
		.ask = {
			.kind = SPAWN_ASK_ADOPT, .handler = request->handler, .generation = request->generation, .ahead = SPAWN_PARKED,
			.is_prompt = true, .pid = pid },
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
