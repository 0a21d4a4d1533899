/** A run that uses all that long runs have: summaries, handles, messages into it, skills, caching. Its model answers by what it is told alone. */
import type { AskedModel, StrictAnswer } from './strict-model-server.ts'

export const pages = 22
export const firstTask = 'Count the pages of the archive.'

/** A page of about 11,000 characters. */
export const pageText = (page: number) =>
  `Page ${page} of the archive.\n${Array.from({ length: 110 }, (_, i) => `Entry ${page * 100 + i} was filed on shelf ${i % 9} by clerk ${i % 7}, and nobody has asked for it since.`).join('\n')}`

/** `model`: with its endpoint. */
export const windowAgent = (model: string, skills: string) => `
recover: true
history: server
skills: ${skills}
workflow:
  - id: answer
    type: llm
    config:
      model: "${model}"
      stream: true
      reasoning: low
      cache: 1h
      retries: 0
      maxSteps: 100
      system: "You read the archive."
      tools: [read]
      context: { window: 16k, keep: 4k }
`

export const isSummary = ({ system }: AskedModel) => system.startsWith('You shorten')

/** How many pages it knows to be read: those that a summary names, and those whose calls it sees. */
export function pagesKnown({ turns }: AskedModel): number {
  const said = turns.filter(({ role }) => role === 'user').map(({ text }) => /(\d+) pages were read/u.exec(text)?.[1])
  const calls = turns.flatMap((turn) => turn.calls).filter(({ name }) => name === 'read')
  return Number(said.findLast((each) => each !== undefined) ?? 0) + calls.length
}

/** `most`: how many pages there are. */
export function readPages(asked: AskedModel, most = pages): StrictAnswer {
  const { turns } = asked
  if (isSummary(asked)) {
    const [{ text } = { text: '' }] = turns
    const before = Number(/(\d+) pages were read/u.exec(text)?.[1] ?? 0)
    return {
      text: `${before + text.split('[assistant calls read]').length - 1} pages were read. The code word is heron.`,
    }
  }
  const known = pagesKnown(asked)
  const hasSkill = known > 0 || turns.some(({ calls }) => calls.length > 0)
  if (!hasSkill)
    return { thinks: 'How is it done?', calls: [{ id: 'call_skill', name: 'useSkill', input: { name: 'counting' } }] }
  if (known < most)
    return { thinks: 'The next one.', calls: [{ id: `call_${known + 1}`, name: 'read', input: { page: known + 1 } }] }
  return { text: `${known} pages. I was told: ${turns[0]!.text}` }
}
