/** Handles files that a message references by URL. */
import { MillraceError } from '../part/error.ts'

interface Wanted {
  url: URL
  isUrlSupportedByModel: boolean
}

/**
 * URLs that the model supports are fetched by its provider. All others are refused: the URLs come from clients, and fetching
 * them here would let clients reach anything this machine can reach. `data:` URLs are handled before this.
 */
export async function refuseDownloads(wanted: readonly Wanted[]): Promise<null[]> {
  if (wanted.every(({ isUrlSupportedByModel }) => isUrlSupportedByModel)) return wanted.map(() => null)
  const message = 'The model does not accept files by URL. Send the file as a data: URL.'
  throw new MillraceError('bad-input', message, { status: 400 })
}
