/** Leads from the last answers of two columns to the comparison of their runs. */
import { useState } from 'react'
import { Link, useLocation } from 'wouter'
import { Button } from '../../../kit/Button.tsx'
import { Dialog } from '../../../kit/Dialog.tsx'
import css from './beside.module.css'

export interface ComparableRun {
  /** `1 poet` */
  name: string
  /** Of its last answer. */
  runId: string
}

export function CompareRuns({ runs }: { runs: readonly ComparableRun[] }) {
  const [, navigate] = useLocation()
  const [isOpen, setOpen] = useState(false)
  const pairs = runs.flatMap((a, i) => runs.slice(i + 1).map((b) => ({ a, b, href: pathOf(a.runId, b.runId) })))
  const open = () => (pairs.length === 1 ? navigate(pairs[0]!.href) : setOpen(true))
  return (
    <>
      <Button icon="swap" disabled={pairs.length === 0} aria-label="Compare the runs" onClick={open}>
        <span className={css.wide}>Compare the runs</span>
      </Button>
      <Dialog isOpen={isOpen} title="Compare which runs?" onClose={() => setOpen(false)}>
        <ul className={css.pairs}>
          {pairs.map(({ a, b, href }) => (
            <li key={href}>
              <Link href={href}>
                {a.name} and {b.name}
              </Link>
            </li>
          ))}
        </ul>
      </Dialog>
    </>
  )
}

function pathOf(a: string, b: string): string {
  return `/compare?a=${encodeURIComponent(a)}&b=${encodeURIComponent(b)}`
}
