/** Ranks texts by the words that they share with a query; rare words count more. Deterministic, without a model. */

/** The `limit` best matches, best first; ties keep their order. Items that share no word are left out. */
export function mostRelevant<T>(items: readonly T[], textOf: (item: T) => string, query: string, limit: number): T[] {
  const wanted = new Set(wordsOf(query))
  const found = items.map((item) => ({
    item,
    words: new Set(wordsOf(textOf(item)).filter((word) => wanted.has(word))),
  }))
  const weight = new Map<string, number>()
  for (const word of wanted) {
    const holders = found.filter(({ words }) => words.has(word)).length
    if (holders > 0) weight.set(word, Math.log(1 + items.length / holders))
  }
  const score = (words: Set<string>) => [...words].reduce((sum, word) => sum + weight.get(word)!, 0)
  return found
    .map(({ item, words }) => ({ item, score: score(words) }))
    .filter(({ score: own }) => own > 0)
    .toSorted((a, b) => b.score - a.score)
    .slice(0, limit)
    .map(({ item }) => item)
}

const unspaced = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]/u

/** Words in lower case. In scripts without spaces: pairs of adjacent characters. */
function wordsOf(text: string): string[] {
  const runs =
    text
      .normalize('NFKC')
      .toLowerCase()
      .match(/[\p{L}\p{M}\p{N}]+/gu) ?? []
  return runs.flatMap((run) => {
    if (!unspaced.test(run)) return [run]
    const signs = [...run]
    return signs.length === 1 ? signs : signs.slice(1).map((sign, i) => signs[i]! + sign)
  })
}
