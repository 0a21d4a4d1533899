import { describe, expect, test } from 'vitest'
import { mostRelevant } from './relevance.ts'

const pick = (items: string[], query: string, limit = 5) => mostRelevant(items, (item) => item, query, limit)

describe('mostRelevant', () => {
  test('texts that share words, rare words counting more; of equals the earlier one; the others are left out', () => {
    const items = ['The cat sat.', 'The dog ran.', 'The parrot spoke; the dog ran.', 'Nobody knows it']
    expect(pick(items, 'Did the PARROT speak?')).toEqual([
      'The parrot spoke; the dog ran.',
      'The cat sat.',
      'The dog ran.',
    ])
    expect(pick(items, 'dog', 1)).toEqual(['The dog ran.'])
    expect(pick(items, 'horse')).toEqual([])
    const common = Array.from({ length: 8 }, (_, i) => `the old mill ${i}`)
    expect(pick([...common, 'a parrot'], 'the old parrot', 1)).toEqual(['a parrot'])
    expect(pick(items, '')).toEqual([])
    expect(pick([], 'dog')).toEqual([])
  })

  test('words are found in any script, whatever their case, accents composed or not', () => {
    expect(pick(['Die Mühle steht.', 'Das Haus.'], 'MÜHLE')).toEqual(['Die Mühle steht.'])
    expect(pick(['Die Mu\u0308hle steht.', 'Das Haus.'], 'mühle')).toEqual(['Die Mu\u0308hle steht.'])
    expect(pick(['我住在巴黎', '天气很好'], '巴黎在哪里')).toEqual(['我住在巴黎'])
    expect(pick(['мельница', 'дом'], 'Где МЕЛЬНИЦА?')).toEqual(['мельница'])
  })

  test('a long text costs no more than its length', () => {
    const long = Array.from({ length: 200_000 }, (_, i) => `word${i}`).join(' ')
    expect(pick([long, 'word7'], `word7 ${long}`, 1)).toEqual([long])
  })
})
