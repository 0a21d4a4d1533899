/** Parts of a table that ranks. */
import css from './Overview.module.css'

/** `titles`: what a head means, by its name. */
export function Heads({ names, titles = {} }: { names: readonly string[]; titles?: Readonly<Record<string, string>> }) {
  return (
    <thead>
      <tr>
        {names.map((name) => (
          <th key={name} scope="col" title={titles[name]}>
            {name}
          </th>
        ))}
      </tr>
    </thead>
  )
}

/** How much of the greatest one it is. The numbers beside it say the same. */
export function Share({ of, color }: { of: number; color: string }) {
  return (
    <span className={css.share} aria-hidden="true" style={{ width: `${of * 100}%`, background: `var(${color})` }} />
  )
}
