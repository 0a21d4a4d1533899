/** Saves a text as a file on the reader's machine. */
export function downloadText(name: string, text: string): void {
  downloadBlob(name, new Blob([text], { type: 'text/plain' }))
}

export function downloadBlob(name: string, blob: Blob): void {
  const url = URL.createObjectURL(blob)
  const link = document.createElement('a')
  link.href = url
  link.download = name
  link.click()
  setTimeout(() => URL.revokeObjectURL(url), 10_000)
}
