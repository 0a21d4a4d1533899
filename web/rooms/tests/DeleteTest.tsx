import { useState } from 'react'
import { useLocation } from 'wouter'
import { removeTest, type WholeTest } from '../../data/tests.ts'
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

/** What goes with a test, and what stays. */
export function DeleteTest({ test: { id, name, file, etag }, onClose, onFailed }: Props) {
  const [, navigate] = useLocation()
  const [state, setState] = useState<{ isBusy: boolean; error?: unknown }>({ isBusy: false })
  const remove = async () => {
    setState({ isBusy: true })
    try {
      await removeTest(id, etag)
      notice('Deleted')
      navigate('/tests')
    } catch (error) {
      setState({ isBusy: false, error })
      onFailed()
    }
  }
  return (
    <div className={css.form}>
      <p>
        “{name}” leaves {file}, with its recordings and results. Its runs stay.
      </p>
      {state.error !== undefined && <ErrorNote error={state.error} isFlush />}
      <div className={css.answer}>
        <Button onClick={onClose}>Keep it</Button>
        <Button look="danger" disabled={state.isBusy} onClick={() => void remove()}>
          Delete
        </Button>
      </div>
    </div>
  )
}
