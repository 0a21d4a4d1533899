/** Colours for code. Loaded with the first block that names its language. */
import type { ReactNode } from 'react'
import { common, createLowlight } from 'lowlight'
import css from './highlight.module.css'

const lowlight = createLowlight(common)
type Child = ReturnType<typeof lowlight.highlight>['children'][number]

/** The code as elements; the code itself if the language is unknown. */
export function highlight(language: string, code: string): ReactNode {
  if (!lowlight.registered(language)) return code
  return lowlight.highlight(language, code).children.map(toNode)
}

function toNode(child: Child, i: number): ReactNode {
  if (child.type === 'text') return child.value
  if (child.type !== 'element') return null
  const names = (child.properties['className'] as string[] | undefined) ?? []
  return (
    <span key={i} className={names.map((name) => css[name]).join(' ')}>
      {child.children.map((each, n) => toNode(each as Child, n))}
    </span>
  )
}
