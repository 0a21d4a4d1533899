/** Makes a test case of a run: a button where it may be made, and a dialog that asks what it checks. */
import { lazy, Suspense, useState } from 'react'
import { Button } from './Button.tsx'
import { Dialog } from './Dialog.tsx'
import { Skeleton } from './Skeleton.tsx'
import { useMayTest } from './use-may-test.ts'

const AddTestForm = lazy(() => import('./AddTestForm.tsx'))

export function AddTest({ run, isIcon = false }: { run: string; isIcon?: boolean }) {
  const [isOpen, setOpen] = useState(false)
  if (!useMayTest()) return null
  const open = () => setOpen(true)
  return (
    <>
      {isIcon ? (
        <Button look="quiet" icon="tests" aria-label="Add as test" onClick={open} />
      ) : (
        <Button onClick={open}>Add as test</Button>
      )}
      <Dialog isOpen={isOpen} title="Add as test" onClose={() => setOpen(false)}>
        <Suspense fallback={<Skeleton rows={4} />}>
          <AddTestForm run={run} onClose={() => setOpen(false)} />
        </Suspense>
      </Dialog>
    </>
  )
}
