/** The words of Vite, and of Chromium, Firefox and Safari. */
const words = /preload CSS|dynamically imported module|Importing a module script failed/iu

/** Whether code of the page could not be loaded. */
export function isNotLoaded(error: unknown): boolean {
  return error instanceof Error && words.test(error.message)
}
