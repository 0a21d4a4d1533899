/** Words that are not sent yet, kept in this tab for each thread. */
import { useState } from 'react'

const prefix = 'millrace-draft:'

/** `first`: what stands there when nothing was written. */
export function useDraft(place: string, first: string): [text: string, set: (text: string) => void] {
  const [state, setState] = useState(() => ({ place, text: read(place) ?? first }))
  const text = state.place === place ? state.text : (read(place) ?? first)
  if (state.place !== place) setState({ place, text })
  return [
    text,
    (next) => {
      setState({ place, text: next })
      write(place, next)
    },
  ]
}

/** What was written while a chat had no thread yet. */
export function moveDraft(from: string, to: string): void {
  const text = read(from)
  if (text === undefined) return
  addToDraft(to, text)
  write(from, '')
}

/** Below what is written there. */
export function addToDraft(place: string, text: string): void {
  write(place, [read(place) ?? '', text].filter((each) => each.trim() !== '').join('\n\n'))
}

function read(place: string): string | undefined {
  try {
    return sessionStorage.getItem(prefix + place) ?? undefined
  } catch {
    return undefined
  }
}

function write(place: string, text: string): void {
  try {
    if (text === '') sessionStorage.removeItem(prefix + place)
    else sessionStorage.setItem(prefix + place, text)
  } catch {
    // Without storage a draft lasts as long as its room.
  }
}
