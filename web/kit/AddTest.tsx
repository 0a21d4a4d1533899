/** Makes a test case of a run: where it may be made, and a dialog that asks what it checks. */
import { lazy, Suspense, useState, type ReactNode } from 'react'
import { Dialog } from './Dialog.tsx'
import { Skeleton } from './Skeleton.tsx'
import { useMayTest } from './use-may-test.ts'

const AddTestForm = lazy(() => import('./AddTestForm.tsx'))

/** For a menu, with which its dialog must not close. No `open`: it may not be made. */
export function useAddTest(run: string): { open: (() => void) | undefined; dialog: ReactNode } {
  const [isOpen, setOpen] = useState(false)
  if (!useMayTest()) return { open: undefined, dialog: null }
  return {
    open: () => setOpen(true),
    dialog: (
      <Dialog isOpen={isOpen} title="Add as test" onClose={() => setOpen(false)}>
        <Suspense fallback={<Skeleton rows={4} />}>
          <AddTestForm run={run} onClose={() => setOpen(false)} />
        </Suspense>
      </Dialog>
    ),
  }
}
