/** Each recording cut at every byte that time allows: it comes to the same parts. `packages.test.ts` has a choice of cuts. */
import { describe, expect, test } from 'vitest'
import { cutsOf, framed } from './testing/cuts.ts'
import { callOf, comparable, hear, protocols } from './testing/play.ts'
import { streamsOf } from './testing/streams.ts'

describe.each(protocols)('%s', (protocol) => {
  test.each(streamsOf(protocol).map((stream) => [stream.name, stream] as const))(
    'cut at every byte: %s',
    (_, { lines, tools }) => {
      const body = framed(lines, { isNamed: true, isDone: protocol === 'openai-chat' })
      const sent = new TextDecoder().decode(body)
      const whole = comparable(hear(protocol, [body], callOf(tools)), sent)
      for (const cut of cutsOf(body)) {
        const cutUp = comparable(hear(protocol, cut(body), callOf(tools)), sent)
        if (JSON.stringify(cutUp) !== JSON.stringify(whole)) expect(cutUp).toEqual(whole)
      }
    },
  )
})
