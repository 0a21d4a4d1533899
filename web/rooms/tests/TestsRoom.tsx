import { TestList } from './TestList.tsx'
import { TestPage } from './TestPage.tsx'

export default function TestsRoom({ id }: { id: string | undefined }) {
  return id === undefined ? <TestList /> : <TestPage key={id} id={id} />
}
