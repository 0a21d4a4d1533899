import { expect, test } from 'vitest'
import { brokenFiles } from './broken-files.ts'

test('the name of a file stands once, each mistake has its line, and long lists of what is known are cut', () => {
  const known = 'a, b, c, d, e, f'
  const message = `shop.yaml:2:68 unknown tool "calc" (did you mean "b"?); known tools: ${known}; to add one, register it\nshop.yaml:9:3 unknown key "modle"; known keys: model, tools`
  expect(brokenFiles([{ file: 'shop.yaml', message, line: 2 }])).toEqual([
    {
      file: 'shop.yaml',
      id: 'shop',
      faults: [
        {
          line: 2,
          place: '2:68',
          text: 'unknown tool "calc" (did you mean "b"?); known tools: a, b, c, d and 2 more; to add one, register it',
        },
        { line: 9, place: '9:3', text: 'unknown key "modle"; known keys: model, tools' },
      ],
    },
  ])
})

test('a mistake of the whole file has no line', () => {
  expect(brokenFiles([{ file: 'x.yml', message: 'cannot be read: EACCES' }])).toEqual([
    { file: 'x.yml', id: 'x', faults: [{ line: undefined, place: '', text: 'cannot be read: EACCES' }] },
  ])
})
