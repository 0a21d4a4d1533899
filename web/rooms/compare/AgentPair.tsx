import { Link } from 'wouter'
import { Empty } from '../../kit/Empty.tsx'
import type { Compared, RunDigest } from './compared.ts'
import { Words } from './TextPair.tsx'
import css from './Compare.module.css'

/** The YAML that each ran with, which need not be what the file says today. */
export function AgentPair({ a, b }: Compared) {
  if (a.pipeline === '' && b.pipeline === '') return <Empty title="Neither run has the text of its agent." />
  const isSame = a.pipeline === b.pipeline
  return (
    <>
      <div className={css.pair}>
        <Name of={a} />
        <Name of={b} />
      </div>
      {isSame && <p className={css.told}>Both ran with the same YAML.</p>}
      <Words name="YAML" a={a.pipeline} b={b.pipeline} isCode />
    </>
  )
}

function Name({ of: { agent } }: { of: RunDigest }) {
  return (
    <h3 className={css.agentName}>
      <Link href={`/agents/${encodeURIComponent(agent)}`}>{agent}</Link>
    </h3>
  )
}
