/** Whose runs or threads are listed: a user's id, in the URL. Those that were seen in the list are offered. */
import { useEffect, useId, useState } from 'react'
import { useQuery } from '../data/query.ts'
import css from './Owner.module.css'

/** The owners that were in these rows since the room was opened. */
export function useOwners(rows: readonly { owner?: string | undefined }[]): readonly string[] {
  const [known, setKnown] = useState<readonly string[]>([])
  const fresh = new Set(rows.flatMap(({ owner }) => (owner === undefined || known.includes(owner) ? [] : [owner])))
  if (fresh.size > 0) setKnown([...known, ...fresh].toSorted())
  return known
}

export function UserFilter({ users }: { users: readonly string[] }) {
  const id = useId()
  const { get, set } = useQuery()
  const user = get('user') ?? ''
  const [text, setText] = useState(user)
  // A link or the back button has changed it.
  useEffect(() => setText(user), [user])
  const choose = (next: string) => {
    if (next.trim() !== user) set({ user: next.trim(), sel: undefined })
  }
  return (
    <>
      <input
        type="search"
        className={css.field}
        list={id}
        value={text}
        placeholder="All users"
        aria-label="User"
        autoComplete="off"
        spellCheck={false}
        onChange={({ target: { value }, nativeEvent }) => {
          setText(value)
          // One of the list was taken, or the field was emptied. What is typed counts when it is finished.
          const { inputType } = nativeEvent as InputEvent
          if (value === '' || inputType === undefined || inputType === 'insertReplacementText') choose(value)
        }}
        onBlur={() => choose(text)}
        onKeyDown={(event) => {
          if (event.key === 'Enter') choose(text)
        }}
      />
      <datalist id={id}>
        {users.map((each) => (
          <option key={each}>{each}</option>
        ))}
      </datalist>
    </>
  )
}
