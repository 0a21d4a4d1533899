/** What becomes of a file that a message names by its address. */
import { MillraceError } from '../part/error.ts'

interface Wanted {
  url: URL
  isUrlSupportedByModel: boolean
}

/**
 * Addresses that the model takes are its provider's to fetch; all others are refused, because they come from clients: to
 * fetch them from here would let a client reach whatever this machine can reach. `data:` URLs never come here.
 */
export async function refuseDownloads(wanted: readonly Wanted[]): Promise<null[]> {
  if (wanted.every(({ isUrlSupportedByModel }) => isUrlSupportedByModel)) return wanted.map(() => null)
  const message = 'The model does not take files by their address: send the file as a data: URL.'
  throw new MillraceError('bad-input', message, { status: 400 })
}
