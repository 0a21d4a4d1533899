/** What an answer took, and which of the answers beside each other took the least. */
import { textOf } from '../../../../src/fold/run-view.ts'
import type { ChatTurn } from '../turn.ts'

export interface AnswerFacts {
  runId: string
  status: ChatTurn['status']
  /** What it answers: the same in each column. */
  asked: string
  /** ms without waiting for anybody. Absent while it goes on. */
  time?: number
  /** ms. */
  firstToken?: number
  tokens?: number
  tokensPerSecond?: number
  /** USD. */
  cost?: number
}

export function factsOf(turn: ChatTurn): AnswerFacts {
  const { runId, status, startedAt, firstTokenAt, workedMs, usage } = turn
  const firstToken = turn.firstTokenMs ?? (firstTokenAt === undefined ? undefined : firstTokenAt - startedAt)
  const tokens = usage?.totalTokens ?? 0
  const tokensPerSecond = speedOf(turn)
  return {
    runId,
    status,
    asked: JSON.stringify([turn.asked.map(textOf), turn.input]),
    ...(workedMs !== undefined && { time: workedMs }),
    ...(firstToken !== undefined && { firstToken }),
    ...(tokens > 0 && { tokens }),
    ...(tokensPerSecond !== undefined && { tokensPerSecond }),
    ...(turn.cost !== undefined && tokens > 0 && { cost: turn.cost }),
  }
}

/** While words came: without the time before the first one, and without what tools took. */
function speedOf({ items, usage }: ChatTurn): number | undefined {
  const spans = items.flatMap((item) =>
    (item.kind === 'text' || item.kind === 'reasoning') && item.endedAt !== undefined
      ? [item.endedAt - item.startedAt]
      : [],
  )
  const ms = spans.reduce((sum, each) => sum + each, 0)
  const tokens = usage?.outputTokens ?? 0
  // What comes all at once has no speed.
  return ms < 20 || tokens === 0 ? undefined : (tokens / ms) * 1000
}

export type Mark = 'fastest' | 'cheapest'

/** By run. */
export type Marks = ReadonlyMap<string, readonly Mark[]>

export interface ColumnAnswers {
  answers: readonly AnswerFacts[]
  /** Something was sent whose answer is not there, or goes on. */
  isBusy: boolean
}

/**
 * Of the answers to one message, when all have ended: a mark needs another answer that did worse. What has failed is not compared. A column that
 * came later has no answers to the first messages.
 */
export function marksOf(columns: readonly ColumnAnswers[]): Marks {
  const rounds = new Map<string, AnswerFacts[]>()
  for (const { answers } of columns) {
    for (const [key, answer] of keyed(answers)) rounds.set(key, [...(rounds.get(key) ?? []), answer])
  }
  const marks = new Map<string, Mark[]>()
  const isBusy = columns.some((column) => column.isBusy)
  for (const round of rounds.values()) {
    if (round.some(isOpen) || (isBusy && round.length < columns.length)) continue
    mark(marks, round, 'fastest', 'time')
    mark(marks, round, 'cheapest', 'cost')
  }
  return marks
}

/** The answer of another column to the message that a run has answered. */
export function sameRound(
  answers: readonly AnswerFacts[],
  runId: string,
  others: readonly AnswerFacts[],
): string | undefined {
  const [key] = keyed(answers).find(([, answer]) => answer.runId === runId) ?? []
  return keyed(others).find(([each]) => each === key)?.[1].runId
}

function isOpen({ status }: AnswerFacts): boolean {
  return status === 'running' || status === 'suspended'
}

/** The same words may be asked again: the last ones belong together. */
function keyed(answers: readonly AnswerFacts[]): [key: string, answer: AnswerFacts][] {
  const seen = new Map<string, number>()
  return answers.toReversed().map((answer) => {
    const n = seen.get(answer.asked) ?? 0
    seen.set(answer.asked, n + 1)
    return [`${n} ${answer.asked}`, answer]
  })
}

function mark(marks: Map<string, Mark[]>, round: readonly AnswerFacts[], name: Mark, by: 'time' | 'cost'): void {
  const whole = round.filter(({ status }) => status === 'completed')
  // One without a price may have been cheaper.
  if (whole.length < 2 || whole.some((each) => each[by] === undefined)) return
  const least = Math.min(...whole.map((each) => each[by]!))
  const best = whole.filter((each) => each[by] === least)
  if (best.length === whole.length) return
  for (const { runId } of best) marks.set(runId, [...(marks.get(runId) ?? []), name])
}
