/** A judging agent: what it is asked, and the score in what it answers. */
import { messagesOf } from '../part/message.ts'
import { textOf } from '../fold/run-view.ts'
import { isMap } from '../pipeline/scalars.ts'
import { jsonIn, type Facts } from './facts.ts'
import type { Failure } from './failure.ts'
import type { Expectation } from './test-case.ts'

type Judge = NonNullable<Expectation['judge']>

export interface Question {
  run: { agent: string; input: Record<string, unknown> }
  verdict(facts: Facts): Failure[]
}

/** The judge’s `$input` has the question, the user’s message, the answer and the output, and all of them as one message. */
export function askJudge(
  { agent, threshold, question = defaultQuestion }: Judge,
  input: Record<string, unknown>,
  facts: Facts,
): Question {
  const asked = messagesOf(input).map(textOf).join('\n')
  const { text: answer, output } = facts
  const said = answer === '' ? JSON.stringify(output ?? null) : answer
  const content = `${question}\n\n<message>\n${asked}\n</message>\n\n<answer>\n${said}\n</answer>`
  return {
    run: {
      agent,
      input: { question, message: asked, answer: said, output: output ?? null, messages: [{ role: 'user', content }] },
    },
    verdict({ outcome, error, text, output: judged }) {
      const why = error === undefined ? '' : `: ${error.message}`
      if (outcome !== 'completed') return [{ what: 'judge', message: `the judge ${agent} ended as ${outcome}${why}` }]
      const score = scoreOf(judged) ?? scoreOf(jsonIn(text))
      if (score === undefined) {
        return [
          {
            what: 'judge',
            message: `the judge ${agent} gave no score: its output must be a number or have a number "score"`,
            got: judged ?? text,
          },
        ]
      }
      if (score >= threshold) return []
      const reason = isMap(judged) && typeof judged['reason'] === 'string' ? `: ${judged['reason']}` : ''
      return [
        {
          what: 'judge',
          message: `the judge ${agent} gave ${score}, less than ${threshold}${reason}`,
          expected: threshold,
          got: score,
        },
      ]
    },
  }
}

const defaultQuestion = 'How good is this answer? Give a score from 0 to 1.'

function scoreOf(value: unknown): number | undefined {
  const found = isMap(value) ? value['score'] : value
  return typeof found === 'number' && Number.isFinite(found) ? found : undefined
}
