import { useState, type SubmitEvent } from 'react'
import { useLocation } from 'wouter'
import { renameTest, type WholeTest } from '../../data/tests.ts'
import { Button } from '../../kit/Button.tsx'
import { ErrorNote } from '../../kit/ErrorNote.tsx'
import { notice } from '../../kit/notice.ts'
import css from './Tests.module.css'

interface Props {
  test: WholeTest
  onClose(): void
  /** It could not be done: the test may have changed. */
  onFailed(): void
}

/** Another name. The address of the test has it, too. */
export function RenameTest({ test: { id, name: before, file, etag }, onClose, onFailed }: Props) {
  const [, navigate] = useLocation()
  const [name, setName] = useState(before)
  const [state, setState] = useState<{ isBusy: boolean; error?: unknown }>({ isBusy: false })
  const rename = async (event: SubmitEvent) => {
    event.preventDefault()
    setState({ isBusy: true })
    try {
      const { id: next } = await renameTest(id, { name, etag })
      notice('Renamed')
      onClose()
      navigate(`/tests/${encodeURIComponent(next)}`, { replace: true })
    } catch (error) {
      setState({ isBusy: false, error })
      onFailed()
    }
  }
  return (
    <form className={css.form} onSubmit={(event) => void rename(event)}>
      <label className={css.field}>
        Name
        <input
          value={name}
          maxLength={200}
          required
          autoComplete="off"
          onChange={(event) => setName(event.target.value)}
        />
      </label>
      <p className={css.soft}>It changes in {file}. The recordings and results follow.</p>
      {state.error !== undefined && <ErrorNote error={state.error} isFlush />}
      <div className={css.answer}>
        <Button type="button" onClick={onClose}>
          Cancel
        </Button>
        <Button look="primary" type="submit" disabled={state.isBusy || name.trim() === '' || name.trim() === before}>
          Rename
        </Button>
      </div>
    </form>
  )
}
