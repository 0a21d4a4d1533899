/** The page in a browser whose language `Intl` refuses, with the package that draws the charts as it is. */
import { pathToFileURL } from 'node:url'
import { afterEach, expect, test } from 'vitest'
import { count, tokens } from './format.ts'
import { mendLanguage } from './language.ts'

const before = new Map(
  ['window', 'document', 'navigator', 'devicePixelRatio', 'matchMedia'].map((name) => [
    name,
    Object.getOwnPropertyDescriptor(globalThis, name),
  ]),
)
afterEach(() => {
  for (const [name, descriptor] of before) {
    if (descriptor === undefined) Reflect.deleteProperty(globalThis, name)
    else Object.defineProperty(globalThis, name, descriptor)
  }
})

/** As much of a browser as the package looks at when it is loaded. Its language is that of a prototype, as browsers have it. */
function openBrowser(language: string): { language: string } {
  const navigator = Object.create({
    get language() {
      return language
    },
  }) as { language: string }
  const listens = new EventTarget()
  const browser = { window: listens, document: listens, navigator, devicePixelRatio: 1, matchMedia: () => listens }
  for (const [name, value] of Object.entries(browser)) {
    Object.defineProperty(globalThis, name, { value, configurable: true, writable: true })
  }
  return navigator
}

/** Loads it anew. */
let times = 0
const charts = pathToFileURL('node_modules/uplot/dist/uPlot.esm.js').href
const loadCharts = () => import(/* @vite-ignore */ `${charts}?${times++}`) as Promise<{ default: unknown }>

test.each(['en-US@posix', 'C', 'x', 'de_DE'])(
  'with the language %s charts load and numbers are written',
  async (language) => {
    const navigator = openBrowser(language)
    await expect(loadCharts()).rejects.toThrow(RangeError)
    mendLanguage(navigator)
    expect(typeof (await loadCharts()).default).toBe('function')
    expect([count(9_999), tokens({ totalTokens: 1234 })]).toEqual(['9,999', '1,234'])
  },
)

test.each(['de-CH', 'ja', 'en-US'])('the language %s stays that of the browser', (language) => {
  const navigator = openBrowser(language)
  mendLanguage(navigator)
  expect(navigator.language).toBe(language)
})
