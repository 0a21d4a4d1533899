import { useEffect, useState } from 'react'
import { Button } from './Button.tsx'
import { copyText } from './copy-text.ts'

interface Props {
  /** Made when it is asked for. */
  text: string | (() => string | Promise<string>)
  /** What is copied: `Copy the id`. Its tooltip, and its words when `children` are absent. */
  label: string
  children?: string
  look?: 'primary' | 'quiet' | 'danger'
}

/** Copies, and says so for a moment. */
export function Copy({ text, label, children, look = 'quiet' }: Props) {
  const [state, setState] = useState<'copied' | 'refused'>()
  useEffect(() => {
    if (state === undefined) return
    const timer = setTimeout(() => setState(undefined), 1500)
    return () => clearTimeout(timer)
  }, [state])
  const copy = async () => {
    try {
      await copyText(typeof text === 'string' ? text : await text())
      setState('copied')
    } catch {
      setState('refused')
    }
  }
  const said = state === 'copied' ? 'Copied' : state === 'refused' ? 'Cannot copy here' : ''
  return (
    <>
      <Button
        look={look}
        icon={state === 'copied' ? 'check' : state === 'refused' ? 'warn' : 'copy'}
        aria-label={label}
        title={label}
        onClick={() => void copy()}
      >
        {children}
      </Button>
      <output className="visually-hidden">{said}</output>
    </>
  )
}
