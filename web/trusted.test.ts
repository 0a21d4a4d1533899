import { expect, test } from 'vitest'
import { assetUrl } from './trusted.ts'

const page = 'http://127.0.0.1:3000'

test('a script among the assets of this origin may be a worker', () => {
  expect(assetUrl('/assets/hub-B7N_qv.js', page)).toBe(`${page}/assets/hub-B7N_qv.js`)
  expect(assetUrl(`${page}/assets/hub.js`, page)).toBe(`${page}/assets/hub.js`)
})

test.each([
  'https://elsewhere.example/assets/hub.js',
  '//elsewhere.example/assets/hub.js',
  'data:text/javascript,1',
  'blob:http://127.0.0.1:3000/x.js',
  'javascript:alert(1)',
  '/api/runs/r/files/hub.js',
  '/assets/../api/hub.js',
  '/assets/a/b.js',
  '/assets/hub.svg',
])('%s may not', (url) => expect(() => assetUrl(url, page)).toThrow('Not a script of this page'))
