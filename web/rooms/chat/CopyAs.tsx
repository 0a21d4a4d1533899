/** The request as code, to look at and to copy. */
import { useState } from 'react'
import { Button } from '../../kit/Button.tsx'
import { Dialog } from '../../kit/Dialog.tsx'
import { Code } from '../../kit/markdown/Code.tsx'
import { codes, type CodeRequest } from './copy-as.ts'
import css from './chat.module.css'

interface Props {
  request: CodeRequest
  isOpen: boolean
  onClose(): void
}

export function CopyAs({ request, isOpen, onClose }: Props) {
  const [chosen, setChosen] = useState('curl')
  const code = codes.find(({ id }) => id === chosen)!
  return (
    <Dialog isOpen={isOpen} title="The same request as code" onClose={onClose} className={css.codes!}>
      <fieldset className={css.choices}>
        <legend className="visually-hidden">Language</legend>
        {codes.map(({ id, label }) => (
          <Button key={id} look="quiet" aria-pressed={id === chosen} onClick={() => setChosen(id)}>
            {label}
          </Button>
        ))}
      </fieldset>
      <Code text={code.make(request)} language={code.language} isOpen={false} />
    </Dialog>
  )
}
