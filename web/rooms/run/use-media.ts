import { useSyncExternalStore } from 'react'

function useMedia(query: string): boolean {
  return useSyncExternalStore(
    (listener) => {
      const media = matchMedia(query)
      media.addEventListener('change', listener)
      return () => media.removeEventListener('change', listener)
    },
    () => matchMedia(query).matches,
  )
}

export function useIsPhone(): boolean {
  return useMedia('(max-width: 720px)')
}

/** Of a row in a dense list, in px: a finger needs more. */
export function useRowHeight(): number {
  return useMedia('(pointer: coarse)') ? 44 : 24
}
