import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { growing } from './tool-loop.ts'

describe('growing texts', () => {
  test('the text equals the old text plus all additions, at any time', () => {
    fc.assert(
      fc.property(
        fc.string(),
        fc.array(fc.string({ maxLength: 3 }), { minLength: 200, maxLength: 400 }),
        (before, pieces) => {
          const block = { text: before }
          const add = growing(block)
          let whole = before
          for (const piece of pieces) {
            add(piece)
            expect(block.text).toBe((whole += piece))
          }
        },
      ),
    )
  })
})
