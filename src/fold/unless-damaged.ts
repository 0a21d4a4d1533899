/** Returns undefined instead of throwing `store-damaged`, so that a list can leave out a damaged run. */
import { MillraceError } from '../part/error.ts'

export async function unlessDamaged<T>(read: () => Promise<T>): Promise<T | undefined> {
  try {
    return await read()
  } catch (error) {
    if (error instanceof MillraceError && error.code === 'store-damaged') return undefined
    throw error
  }
}
