/** For lists, which go on without a run of which somebody else has damaged what the store has. */
import { MillraceError } from '../part/error.ts'

export async function unlessDamaged<T>(read: () => Promise<T>): Promise<T | undefined> {
  try {
    return await read()
  } catch (error) {
    if (error instanceof MillraceError && error.code === 'store-damaged') return undefined
    throw error
  }
}
