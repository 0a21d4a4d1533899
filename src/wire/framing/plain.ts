/** Events that are text already, one behind the other. */
import type { Framing } from '../wire.ts'
import { createTextFrames } from './text-frames.ts'

/** Sends events that are text as they are. */
export const plain: Framing<string> = {
  contentType: 'text/plain; charset=utf-8',
  keepAlive: '',
  open: () => createTextFrames((text: string) => text),
}
