import { Empty } from '../../kit/Empty.tsx'
import { JsonTree } from '../../kit/JsonTree.tsx'
import { align } from '../../kit/diff/align.ts'
import type { Compared, ToolDigest } from './compared.ts'
import css from './Compare.module.css'

/** The tools that each called, with arguments and results. */
export function ToolPairs({ a, b }: Compared) {
  const pairs = align(a.tools, b.tools, ({ name }) => name)
  if (pairs.length === 0) return <Empty title="Neither run has called a tool." />
  return (
    <ol className={css.tools}>
      {pairs.map(([x, y], i) => (
        <li key={i} className={css.tool}>
          <h3>
            {(x ?? y)!.name} <span className={css.verdict}>{verdict(x, y)}</span>
          </h3>
          <div className={css.pair}>
            <Call side="A" tool={x} />
            <Call side="B" tool={y} />
          </div>
        </li>
      ))}
    </ol>
  )
}

function verdict(x: ToolDigest | undefined, y: ToolDigest | undefined): string {
  if (x === undefined) return 'only in B'
  if (y === undefined) return 'only in A'
  const [isSameInput, isSameOutput] = [x.input === y.input, x.output === y.output]
  if (isSameInput && isSameOutput) return 'the same'
  return isSameInput ? 'another result' : isSameOutput ? 'other arguments' : 'other arguments, another result'
}

function Call({ side, tool }: { side: string; tool: ToolDigest | undefined }) {
  if (tool === undefined) return <div className={css.cell} data-side={side} />
  return (
    <div className={css.cell} data-side={side} data-error={tool.isError || undefined}>
      <JsonTree name="arguments" value={parsed(tool.input)} />
      {tool.output === undefined ? (
        <p className={css.none}>No result.</p>
      ) : (
        <JsonTree name={tool.isError === true ? 'error' : 'result'} value={parsed(tool.output)} />
      )}
    </div>
  )
}

/** What was cut is shown as text. */
function parsed(json: string): unknown {
  try {
    return JSON.parse(json) as unknown
  } catch {
    return json
  }
}
