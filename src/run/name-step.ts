import { messageOf, MillraceError } from '../part/error.ts'

/** What goes wrong while a step's config is looked at says which step it is. */
export function nameStep<T>({ id, type }: { id: string; type: string }, body: () => T): T {
  try {
    return body()
  } catch (error) {
    const { code = 'bad-value', status } = error instanceof MillraceError ? error : {}
    throw new MillraceError(code, `Step ${id} (${type}): ${messageOf(error)}`, {
      cause: error,
      ...(status === undefined ? undefined : { status }),
    })
  }
}
