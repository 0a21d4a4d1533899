/** Copies text. A page that comes over plain HTTP from another machine has no `clipboard`: there, by way of a field. */
export async function copyText(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text)
  } catch {
    const before = document.activeElement
    const field = document.createElement('textarea')
    field.value = text
    field.setAttribute('aria-hidden', 'true')
    field.className = 'visually-hidden'
    // Inside of an open dialog: nothing outside of it can be selected.
    const root = document.querySelector('dialog:modal') ?? document.body
    root.append(field)
    field.select()
    // Nothing else copies where there is no clipboard.
    const done = document.execCommand('copy')
    field.remove()
    if (before instanceof HTMLElement) before.focus()
    if (!done) throw new Error('The browser does not allow copying here.')
  }
}
