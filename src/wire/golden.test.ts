/**
 * Each `golden/<case>.ndjson` is a run; beside it stands what each wire sends of it. `UPDATE_GOLDEN=1` writes the files
 * again: read the diff before you commit it.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import type { Entry } from '../part/entry.ts'
import { createGrammar } from '../fold/grammar.ts'
import { golden as goldenFile } from '../../test/golden.ts'
import { complete } from '../../test/openai-items.ts'
import { agUiWire } from './ag-ui/ag-ui.ts'
import { messagesJsonWire } from './messages/messages-json.ts'
import { messagesWire } from './messages/messages.ts'
import type { OpenAiOptions } from './openai/openai-output.ts'
import { openaiWire } from './openai/openai.ts'
import { partsWire } from './parts/parts.ts'
import { responsesJsonWire } from './responses/responses-json.ts'
import { responsesWire } from './responses/responses.ts'
import { textWire } from './text/text.ts'
import { uiWire } from './ui/ui.ts'
import { lastResume } from './wire.contract.ts'
import type { Wire, WireContext } from './wire.ts'

const folder = new URL('golden/', import.meta.url)
const names = readdirSync(folder)
  .filter((file) => file.endsWith('.ndjson'))
  .map((file) => file.slice(0, -'.ndjson'.length))

describe('golden files', () => {
  test('there are cases', () => {
    expect(names.length).toBeGreaterThanOrEqual(15)
  })

  const golden = (file: string, body: string) => goldenFile(new URL(file, folder), body)

  interface Asked<Options> extends WireContext {
    options?: Partial<Options>
    /** The client has these entries. */
    after?: number
  }

  function encode<Options extends object>(
    wire: Wire<Options>,
    entries: readonly Entry[],
    asked: Asked<Options>,
  ): string {
    const { options, after = 0, ...context } = asked
    const encoder = wire.createEncoder(context, options)
    for (const entry of entries.slice(0, after)) encoder.skip(entry)
    const body = entries.slice(after).map((entry) => encoder.encode(entry))
    return `${body.join('')}${encoder.state === 'broken' ? '<transfer broken>' : ''}`
  }

  const extended: OpenAiOptions = { includeUsage: true, extensions: ['tools', 'trace'], toolOutputMaxChars: 40 }

  test.each(names)('%s', (name) => {
    const source = readFileSync(new URL(`${name}.ndjson`, folder), 'utf8')
    const entries = source
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as Entry)
    const grammar = createGrammar()
    for (const entry of entries) expect(grammar.check(entry)).toBeUndefined()
    expect(grammar.end()).toBeUndefined()

    const resumedAt = lastResume(entries)
    expect(encode(partsWire, entries, {})).toBe(source)
    golden(`${name}.text.txt`, encode(textWire, entries, { resumedAt }))
    golden(`${name}.ui.txt`, encode(uiWire, entries, { resumedAt }))
    golden(`${name}.ui7.txt`, encode(uiWire, entries, { resumedAt, options: { ui7: true } }))
    golden(`${name}.openai.txt`, encode(openaiWire, entries, { resumedAt }))
    golden(`${name}.openai.json`, `${JSON.stringify(complete(entries, {}, resumedAt), undefined, 2)}\n`)
    golden(`${name}.openai-extensions.txt`, encode(openaiWire, entries, { resumedAt, options: extended }))
    golden(`${name}.responses.txt`, encode(responsesWire, entries, { resumedAt }))
    const whole = responsesJsonWire.createEncoder({ resumedAt })
    const [response] = entries.flatMap((entry) => whole.encode(entry))
    golden(`${name}.responses.json`, `${JSON.stringify(response, undefined, 2)}\n`)
    const signed = { reasoning: 'sealed' }
    golden(`${name}.messages.txt`, encode(messagesWire, entries, { resumedAt, options: signed }))
    const message = messagesJsonWire.createEncoder({ resumedAt }, signed)
    const [sum] = entries.flatMap((entry) => message.encode(entry))
    golden(`${name}.messages.json`, `${JSON.stringify(sum, undefined, 2)}\n`)
    const agUi = encode(agUiWire, entries, { resumedAt })
    golden(`${name}.ag-ui.txt`, agUi)
    const agUiOld = encode(agUiWire, entries, { resumedAt, options: { old: true } })
    if (agUiOld !== agUi) golden(`${name}.ag-ui-old.txt`, agUiOld)
    if (entries.some(({ type, ...entry }) => type === 'request' && 'roles' in entry)) {
      const user: WireContext = { roles: ['user'] }
      golden(`${name}.ui-user.txt`, encode(uiWire, entries, { resumedAt, ...user }))
      golden(`${name}.ui7-user.txt`, encode(uiWire, entries, { resumedAt, ...user, options: { ui7: true } }))
      golden(`${name}.ag-ui-user.txt`, encode(agUiWire, entries, { resumedAt, ...user }))
      golden(`${name}.ag-ui-user-first.txt`, encode(agUiWire, entries, user))
      const operator: WireContext = { resumedAt, roles: ['operator'] }
      expect(encode(uiWire, entries, operator)).toBe(encode(uiWire, entries, { resumedAt }))
      expect(encode(agUiWire, entries, operator)).toBe(encode(agUiWire, entries, { resumedAt }))
    }
    if (resumedAt === 0) return
    golden(`${name}.ag-ui-first.txt`, encode(agUiWire, entries, {}))
    golden(`${name}.ag-ui-resumed.txt`, encode(agUiWire, entries, { resumedAt, after: resumedAt - 1 }))
    golden(`${name}.ag-ui-live.txt`, encode(agUiWire, entries, { options: { live: true } }))
    golden(`${name}.ui-first.txt`, encode(uiWire, entries, {}))
    golden(`${name}.ui-resumed.txt`, encode(uiWire, entries, { resumedAt, after: resumedAt - 1 }))
  })

  test('the run of a CLI agent as AG-UI', () => {
    const source = readFileSync(new URL('cli-agent.ndjson', folder), 'utf8').trimEnd()
    const entries = source.split('\n').map((line) => JSON.parse(line) as Entry)
    golden('cli-agent.ag-ui.txt', encode(agUiWire, entries, {}))
  })
})
