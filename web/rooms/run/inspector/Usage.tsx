/** What a step took: tokens, cost, and time. */
import { cachedShare, cost, count, duration, moment } from '../../../kit/format.ts'
import type { StepNode } from '../../../../src/fold/step-tree.ts'
import type { Room } from '../use-room.ts'
import { useSkills } from './use-skills.ts'
import type { Usage as Tokens } from '../../../../src/part/usage.ts'
import css from './Inspector.module.css'

type UsageLine = [name: string, value: string | undefined]

export function Usage({ node, now }: { node: StepNode; now: number }) {
  const { step, marks } = node
  const end = step.end ?? now
  const rows: UsageLine[] = [
    ['Model', step.model],
    ['Ended by', step.finishReason],
    ...tokenRows(step.usage),
    ['Cost', step.usage === undefined ? undefined : cost(step.cost)],
    ['Started', moment(step.at)],
    ['Took', duration(end - step.at)],
    ['Waited for the model', step.opened === undefined ? undefined : duration(step.opened - step.at)],
    ['First token', step.first === undefined ? undefined : duration(step.first - step.at)],
    ['Streamed', step.first === undefined ? undefined : duration(end - step.first)],
    ['Retries', String(marks.filter(({ type }) => type === 'retry').length || '') || undefined],
    ['Entries', `${step.from}–${step.to}`],
  ]
  return <Rows rows={rows} />
}

export function RunUsage({ room }: { room: Room }) {
  const { facts } = room.model
  const { durationMs, suspendedMs, queueMs, firstTokenMs, tokensPerSecond, usage } = facts
  const skills = useSkills(room)
  return (
    <Rows
      rows={[
        ...tokenRows(usage),
        ['Cost', cost(facts.cost)],
        ['Took', duration(durationMs)],
        ['Waited for answers', suspendedMs === 0 ? undefined : duration(suspendedMs)],
        ['Until its first step', queueMs === undefined ? undefined : duration(queueMs)],
        ['First token', firstTokenMs === undefined ? undefined : duration(firstTokenMs)],
        ['Speed', tokensPerSecond === undefined ? undefined : `${Math.round(tokensPerSecond)} tokens/s`],
        ['Retries', facts.retries === 0 ? undefined : String(facts.retries)],
        ['Skills used', skills === undefined || skills.length === 0 ? undefined : skills.join(', ')],
      ]}
    />
  )
}

function tokenRows(usage: Tokens | undefined): UsageLine[] {
  if (usage === undefined) return []
  const number = (n: number | undefined) => (n === undefined ? undefined : count(n))
  const share = cachedShare(usage)
  return [
    ['Tokens in', number(usage.inputTokens)],
    [
      '… from the cache',
      share === undefined ? number(usage.cachedInputTokens) : `${count(usage.cachedInputTokens!)} (${share})`,
    ],
    ['… into the cache', number(usage.cacheWriteInputTokens)],
    ['Tokens out', number(usage.outputTokens)],
    ['… for reasoning', number(usage.reasoningTokens)],
    [
      'Tokens',
      usage.totalTokens === undefined
        ? undefined
        : `${count(usage.totalTokens)}${usage.source === 'estimated' ? ', estimated' : ''}`,
    ],
  ]
}

function Rows({ rows }: { rows: readonly UsageLine[] }) {
  return (
    <dl className={css.rows}>
      {rows.map(([name, value]) =>
        value === undefined ? null : (
          <div key={name}>
            <dt>{name}</dt>
            <dd className="num">{value}</dd>
          </div>
        ),
      )}
    </dl>
  )
}
