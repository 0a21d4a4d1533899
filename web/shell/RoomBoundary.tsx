/** A room that fails shows its error in its place; the rest of the page goes on. */
import { Component, type ReactNode } from 'react'
import { ErrorNote } from '../kit/ErrorNote.tsx'
import { isNotLoaded } from './not-loaded.ts'
import { NotLoaded } from './NotLoaded.tsx'

interface Props {
  place: string
  children: ReactNode
}

interface BoundaryState {
  place?: string
  error?: unknown
}

export class RoomBoundary extends Component<Props, BoundaryState> {
  override state: BoundaryState = {}

  static getDerivedStateFromError(error: unknown): BoundaryState {
    return { error }
  }

  /** Another place has not failed. */
  static getDerivedStateFromProps({ place }: Props, state: BoundaryState): BoundaryState | null {
    return place === state.place ? null : { place, error: undefined }
  }

  override render() {
    if (this.state.error === undefined) return this.props.children
    if (isNotLoaded(this.state.error)) return <NotLoaded />
    return <ErrorNote error={this.state.error} onRetry={() => this.setState({ error: undefined })} />
  }
}
