/**
 * The event bus of the page.
 *
 * Invariants: every subscriber gets events in the order in which they were emitted, also events that a handler emits; a
 * handler that throws stops no other handler; `SYSTEM_FILE_SYNC` and `AGENT_EXEC_CMD` without a handler wait for
 * their first handler, so that no event is lost while WordPress starts.
 */

/** Payloads by event type. */
export interface Events {
	/** A file to write. `path` is absolute, or relative to the first root. */
	SYSTEM_FILE_SYNC: { readonly path: string; readonly content: string; /** `tree`: only announce a file that exists. */ readonly source?: 'tree' };
	/** A command to run. Without `executionId` the runtime chooses one. */
	AGENT_EXEC_CMD: { readonly command: string; readonly args?: readonly string[]; readonly executionId?: string };
	RUNTIME_OUTPUT: { readonly executionId: string; readonly stream: 'stdout' | 'stderr'; readonly data: string };
	RUNTIME_EXIT: { readonly executionId: string; readonly exitCode: number; readonly error?: { readonly code: string; readonly message: string } };
	RUNTIME_READY: { readonly roots: readonly string[]; readonly execution: 'browser-playground' };
}

export type EventType = keyof Events;

/** What a handler gets. */
export interface Envelope< Type extends EventType = EventType > {
	readonly id: string;
	/** ISO 8601, UTC. */
	readonly time: string;
	readonly event: { readonly type: Type; readonly payload: Events[ Type ] };
}

export type Handler< Type extends EventType > = ( envelope: Envelope< Type > ) => unknown;

/** An event that the bus refuses. */
export class EventError extends Error {
	readonly code = 'wp_codebox_input_invalid';
}

const TYPES: readonly EventType[] = [ 'SYSTEM_FILE_SYNC', 'AGENT_EXEC_CMD', 'RUNTIME_OUTPUT', 'RUNTIME_EXIT', 'RUNTIME_READY' ];
/** Event types that wait for their first handler. */
const WAITING: readonly EventType[] = [ 'SYSTEM_FILE_SYNC', 'AGENT_EXEC_CMD' ];

/** What a subscription may say besides its handler. */
export interface SubscribeOptions {
	/** An observer does not take events off the waiting list: they wait for a handler that acts on them. */
	readonly observer?: boolean;
}

interface Subscription {
	readonly handler: Handler< EventType >;
	readonly observer: boolean;
}

export class EventBus {
	private readonly subscriptions = new Map< EventType, Set< Subscription > >();
	private readonly waiting: Envelope[] = [];
	private readonly pending: Envelope[] = [];
	private delivering = false;
	private count = 0;

	/** `report` gets what handlers throw. */
	constructor( private readonly report: ( thrown: unknown, envelope: Envelope ) => void = ( thrown ) => globalThis.console.error( thrown ) ) {}

	/** Emits an event and returns the id of its envelope. */
	emit< Type extends EventType >( event: { readonly type: Type; readonly payload: Events[ Type ] } ): string {
		check( event );
		this.count += 1;
		const envelope: Envelope = Object.freeze( {
			id: `event-${ this.count }`,
			time: new Date().toISOString(),
			event: Object.freeze( { type: event.type, payload: Object.freeze( { ...event.payload } ) } ),
		} ) as unknown as Envelope;
		this.pending.push( envelope );
		this.deliver();
		return envelope.id;
	}

	/** Calls the handler for each event of this type; returns a function that ends the subscription. */
	subscribe< Type extends EventType >( type: Type, handler: Handler< Type >, { observer = false }: SubscribeOptions = {} ): () => void {
		if ( ! TYPES.includes( type ) ) {
			throw new EventError( `there is no event type ${ JSON.stringify( type ) }; the types are ${ TYPES.join( ', ' ) }` );
		}
		if ( 'function' !== typeof handler ) {
			throw new EventError( 'the handler of an event must be a function' );
		}
		const subscription: Subscription = { handler: handler as Handler< EventType >, observer };
		const all = this.subscriptions.get( type ) ?? new Set();
		all.add( subscription );
		this.subscriptions.set( type, all );
		if ( ! observer ) {
			this.release();
		}
		return () => {
			all.delete( subscription );
		};
	}

	/** Delivers waiting events until the first of them has no handler. So their order stays the same across types. */
	private release(): void {
		for ( let first = this.waiting[ 0 ]; first && this.isHandled( first.event.type ); first = this.waiting[ 0 ] ) {
			this.waiting.shift();
			this.call( first, ( subscription ) => ! subscription.observer );
		}
	}

	private isHandled( type: EventType ): boolean {
		return [ ...( this.subscriptions.get( type ) ?? [] ) ].some( ( subscription ) => ! subscription.observer );
	}

	private deliver(): void {
		if ( this.delivering ) {
			return;
		}
		this.delivering = true;
		try {
			for ( let envelope = this.pending.shift(); envelope; envelope = this.pending.shift() ) {
				const type = envelope.event.type;
				if ( WAITING.includes( type ) && ( this.waiting.length > 0 || ! this.isHandled( type ) ) ) {
					this.waiting.push( envelope );
					this.call( envelope, ( subscription ) => subscription.observer );
					this.release();
				} else {
					this.call( envelope, () => true );
				}
			}
		} finally {
			this.delivering = false;
		}
	}

	private call( envelope: Envelope, wanted: ( subscription: Subscription ) => boolean ): void {
		for ( const subscription of [ ...( this.subscriptions.get( envelope.event.type ) ?? [] ) ].filter( wanted ) ) {
			try {
				const result = subscription.handler( envelope );
				if ( result instanceof Promise ) {
					result.catch( ( thrown: unknown ) => this.report( thrown, envelope ) );
				}
			} catch ( thrown ) {
				this.report( thrown, envelope );
			}
		}
	}
}

function check( event: { readonly type: EventType; readonly payload: unknown } ): void {
	const refuse = ( why: string ): never => {
		throw new EventError( why );
	};
	if ( ! event || ! TYPES.includes( event.type ) ) {
		refuse( `there is no event type ${ JSON.stringify( event?.type ) }; the types are ${ TYPES.join( ', ' ) }` );
	}
	const payload = event.payload as Record< string, unknown > | null;
	if ( null === payload || 'object' !== typeof payload ) {
		return refuse( `the payload of ${ event.type } must be an object` );
	}
	const text = ( name: string ) => 'string' === typeof payload[ name ] || refuse( `the member ${ name } of ${ event.type } must be a string` );
	if ( 'SYSTEM_FILE_SYNC' === event.type ) {
		text( 'path' );
		text( 'content' );
	} else if ( 'AGENT_EXEC_CMD' === event.type ) {
		text( 'command' );
		const args = payload.args ?? [];
		if ( ! Array.isArray( args ) || ! args.every( ( arg ) => 'string' === typeof arg ) ) {
			refuse( 'the member args of AGENT_EXEC_CMD must be a list of strings' );
		}
		if ( undefined !== payload.executionId ) {
			text( 'executionId' );
		}
	} else if ( 'RUNTIME_OUTPUT' === event.type || 'RUNTIME_EXIT' === event.type ) {
		text( 'executionId' );
	}
}
