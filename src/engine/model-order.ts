/** In which order the models of a loop are asked: the one that answered first, and none that has just failed. */
import type { ModelResolver } from '../models/language-model.ts'

/** ms in which a model that has failed is not asked first. */
const cooldown = 60_000
/** Names come from agent files and requests. */
const most = 1000

/** When each model has failed last, in this process. */
const failures = new WeakMap<ModelResolver, Map<string, number>>()

export function noteFailure(models: ModelResolver, name: string): void {
  const known = failures.get(models) ?? new Map<string, number>()
  failures.set(models, known)
  known.delete(name)
  known.set(name, performance.now())
  if (known.size > most) known.delete(known.keys().next().value!)
}

/** `answered`: who made the loop's last answer. Those behind it come next, then those before it. */
export function inOrder<T extends { name: string }>(
  models: ModelResolver,
  all: T[],
  answered: string | undefined,
): T[] {
  if (all.length < 2) return all
  const from = all.findIndex(({ name }) => name === answered)
  if (from >= 0) return [...all.slice(from), ...all.slice(0, from)]
  const known = failures.get(models)
  const isTired = ({ name }: T) => performance.now() - (known?.get(name) ?? -Infinity) < cooldown
  return [...all.filter((each) => !isTired(each)), ...all.filter(isTired)]
}
