/**
 * Calls and events over a MessagePort.
 *
 * A port connects only the two ends that hold it. Which end gets a port is decided once, in the handshake of
 * `client.ts` and `remote.ts`, where origin, source window and channel id are checked.
 */
import type { EngineCode, EngineFailure } from './api.js';
import { closed, fromFailure, toFailure } from './errors.js';

type Packet =
	| { kind: 'call'; id: number; method: string; args: unknown[] }
	| { kind: 'answer'; id: number; value: unknown }
	| { kind: 'error'; id: number; failure: EngineFailure }
	| { kind: 'event'; name: string; data: unknown };

/** Functions that the other end may call, by name. */
export type Handlers = Record< string, ( ...args: never[] ) => unknown >;

interface Waiting {
	resolve: ( value: unknown ) => void;
	reject: ( error: Error ) => void;
}

/** One end of a port. */
export class Rpc {
	private readonly waiting = new Map< number, Waiting >();
	private readonly listeners = new Map< string, Set< ( data: unknown ) => void > >();
	private last = 0;
	private ended: Error | undefined;

	/** `fallback` is the code of a failure that a handler throws without a code of its own. */
	constructor( private readonly port: MessagePort, private readonly handlers: Handlers, private readonly fallback: EngineCode ) {
		port.onmessage = ( event ) => void this.receive( event.data as Packet );
		port.start();
	}

	/** Calls a function of the other end. */
	call< Value = unknown >( method: string, args: unknown[] = [], transfer: Transferable[] = [] ): Promise< Value > {
		if ( undefined !== this.ended ) {
			return Promise.reject( this.ended );
		}
		this.last += 1;
		const id = this.last;
		return new Promise( ( resolve, reject ) => {
			this.waiting.set( id, { resolve: resolve as ( value: unknown ) => void, reject } );
			this.port.postMessage( { kind: 'call', id, method, args } satisfies Packet, transfer );
		} );
	}

	/** Sends an event to the other end. */
	emit( name: string, data: unknown ): void {
		if ( undefined === this.ended ) {
			this.port.postMessage( { kind: 'event', name, data } satisfies Packet );
		}
	}

	/** Listens to an event of the other end; returns a function that removes the listener. */
	on( name: string, listener: ( data: unknown ) => void ): () => void {
		const all = this.listeners.get( name ) ?? new Set();
		this.listeners.set( name, all );
		all.add( listener );
		return () => void all.delete( listener );
	}

	/** Ends this side: open and later calls fail with `reason`. */
	close( reason: Error = closed() ): void {
		this.ended ??= reason;
		this.port.close();
		for ( const one of this.waiting.values() ) {
			one.reject( reason );
		}
		this.waiting.clear();
	}

	private async receive( packet: Packet ): Promise< void > {
		if ( 'event' === packet.kind ) {
			this.listeners.get( packet.name )?.forEach( ( listener ) => listener( packet.data ) );
			return;
		}
		if ( 'call' === packet.kind ) {
			await this.answer( packet.id, packet.method, packet.args );
			return;
		}
		const one = this.waiting.get( packet.id );
		this.waiting.delete( packet.id );
		if ( 'answer' === packet.kind ) {
			one?.resolve( packet.value );
		} else {
			one?.reject( fromFailure( packet.failure ) );
		}
	}

	private async answer( id: number, method: string, args: unknown[] ): Promise< void > {
		let packet: Packet;
		try {
			const handler = Object.hasOwn( this.handlers, method ) ? this.handlers[ method ] : undefined;
			if ( undefined === handler ) {
				throw new Error( `The function ${ method } does not exist.` );
			}
			packet = { kind: 'answer', id, value: await ( handler as ( ...all: unknown[] ) => unknown )( ...args ) };
		} catch ( thrown ) {
			packet = { kind: 'error', id, failure: toFailure( thrown, this.fallback ) };
		}
		if ( undefined === this.ended ) {
			this.port.postMessage( packet );
		}
	}
}
