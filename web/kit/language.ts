/** What the page takes for its numbers where the browser's language is none. */
const fallback = 'en-US'

/**
 * Some browsers have a language that `Intl` refuses, such as `C` or `en-US@posix` of a system's settings. The package that draws the charts asks `Intl` for
 * it when it is loaded, and would throw: then the browser has the language that numbers are written in here. Call it before a room is loaded.
 */
export function mendLanguage(browser: Pick<Navigator, 'language'>): void {
  try {
    new Intl.NumberFormat(browser.language)
  } catch {
    Object.defineProperty(browser, 'language', { value: fallback, configurable: true })
  }
}
