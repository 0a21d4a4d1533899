import { expect, test } from 'vitest'
import { isNotLoaded } from './not-loaded.ts'

test('what a browser says when code of the page does not come', () => {
  for (const message of [
    'Unable to preload CSS for http://x/assets/words-C.css',
    'Failed to fetch dynamically imported module: http://x/assets/a.js',
    'error loading dynamically imported module: http://x/assets/a.js',
    'Importing a module script failed.',
  ]) {
    expect(isNotLoaded(new TypeError(message))).toBe(true)
  }
  expect(isNotLoaded(new TypeError('Failed to fetch'))).toBe(false)
  expect(isNotLoaded('preload CSS')).toBe(false)
})
