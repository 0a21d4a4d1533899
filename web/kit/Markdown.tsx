/** Markdown as React elements. While it streams, only its last block is parsed and drawn again. */
import { memo, useState } from 'react'
import { createBlocks, type MarkdownBlock } from './markdown/blocks.ts'
import { nodes } from './markdown/nodes.tsx'
import css from './markdown/Markdown.module.css'

/** `isOpen`: more of the text may come. */
export const Markdown = memo(function Markdown({ text, isOpen = false }: { text: string; isOpen?: boolean }) {
  const [blocks] = useState(createBlocks)
  const all = blocks.read(text, isOpen)
  return (
    <div className={css.markdown}>
      {all.map((block, i) => (
        <BlockView key={block.at} block={block} isOpen={isOpen && i === all.length - 1} />
      ))}
    </div>
  )
})

const BlockView = memo(function BlockView({ block, isOpen }: { block: MarkdownBlock; isOpen: boolean }) {
  return nodes(block.tokens, isOpen)
})
