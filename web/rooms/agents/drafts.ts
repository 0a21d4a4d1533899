/** Changed texts that are not saved yet, for as long as the tab is open: leaving the room or loading the page again loses nothing. */
export interface Draft {
  text: string
  /** Of the text on disk that it was made from. */
  etag: string | undefined
}

const nameOf = (id: string) => `millrace-draft-${id}`

export function readDraft(id: string): Draft | undefined {
  try {
    const { text, etag } = JSON.parse(sessionStorage.getItem(nameOf(id)) ?? '{}') as Partial<Draft>
    return typeof text === 'string' ? { text, etag } : undefined
  } catch {
    return undefined
  }
}

export function keepDraft(id: string, draft: Draft | undefined): void {
  try {
    if (draft === undefined) sessionStorage.removeItem(nameOf(id))
    else sessionStorage.setItem(nameOf(id), JSON.stringify(draft))
  } catch {
    // Full or forbidden: the draft lasts as long as the room is open.
  }
}
