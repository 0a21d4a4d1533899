/** The arguments of a call that somebody decides on: none, short ones in a line to be read at a glance, others as a tree. */
import { JsonTree } from './JsonTree.tsx'
import css from './OpenRequest.module.css'

export function Arguments({ value }: { value: unknown }) {
  const short = shortOf(value)
  if (short?.length === 0) return null
  if (short === undefined) {
    return (
      <div className={css.tree}>
        <JsonTree value={value} name="arguments" depth={3} />
      </div>
    )
  }
  return (
    <dl className={css.args} aria-label="Arguments">
      {short.map(([name, text]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{text}</dd>
        </div>
      ))}
    </dl>
  )
}

/** Undefined: it is no object with a few short values. */
function shortOf(value: unknown): [name: string, text: string][] | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined
  const all = Object.entries(value)
  if (all.length > 8 || all.some(([, each]) => typeof each === 'object' && each !== null)) return undefined
  const texts = all.map(([name, each]): [string, string] => [name, String(each)])
  return texts.join().length > 240 ? undefined : texts
}
