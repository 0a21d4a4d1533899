import { useMedia } from '../../data/media.ts'

/** Of a row in a dense list, in px: a finger needs more. */
export function useRowHeight(): number {
  return useMedia('(pointer: coarse)') ? 44 : 24
}
