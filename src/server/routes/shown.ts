import { MillraceError } from '../../part/error.ts'
import type { HandlerContext } from '../handler.ts'

/** For routes that show what was said, to whoever names it. Throws `forbidden` where anybody may ask. */
export function checkShown({ isPrivate }: Pick<HandlerContext, 'isPrivate'>): void {
  if (isPrivate) return
  const why = 'Conversations are shown only where it is decided who may see them'
  throw new MillraceError('forbidden', `${why}: give createHandler an "authorize" or an "apiKey".`)
}
