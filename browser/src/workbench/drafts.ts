/**
 * Keeps edits in the browser, so that a reload or a crash of the tab loses none.
 *
 * One record per session in IndexedDB. Where the browser denies storage or has no space, the page says so and works on.
 */
import { i18n } from './i18n';
import { PageError } from './failure';

const DATABASE = 'wp-codebox-browser-edits';
const STORE = 'sessions';
/** Number of sessions whose edits are kept. */
const MAX_SESSIONS = 10;

/** A changed file: contents after the change, null when it is deleted. */
export interface KeptFile {
	/** Name below wp-content. */
	readonly target: string;
	/** SHA-256 of the file that was changed; null for an added file. */
	readonly before: string | null;
	readonly after: Uint8Array | null;
}

/** The edits of one session. */
export interface KeptEdits {
	readonly session: string;
	/** Names of the session's roots, sorted and joined: edits fit a session with equal roots. */
	readonly roots: string;
	/** Milliseconds since 1970. */
	readonly time: number;
	readonly files: readonly KeptFile[];
	/** Text of an editor that was not saved, by target. */
	readonly unsaved: Readonly< Record< string, string > >;
	/** Whether these files are stored in a bundle. */
	readonly kept: boolean;
}

export class Drafts {
	private database: Promise< IDBDatabase > | null = null;

	constructor( private readonly factory: IDBFactory | undefined = globalThis.indexedDB ) {}

	/** Replaces the stored edits of a session; removes them when `edits` is empty. */
	async put( edits: KeptEdits ): Promise< void > {
		if ( 0 === edits.files.length && 0 === Object.keys( edits.unsaved ).length ) {
			return this.remove( edits.session );
		}
		await this.transaction( 'readwrite', ( store ) => store.put( edits ) );
		const all = await this.all();
		for ( const old of all.slice( MAX_SESSIONS ) ) {
			await this.remove( old.session );
		}
	}

	/** Removes the stored edits of a session. */
	async remove( session: string ): Promise< void > {
		await this.transaction( 'readwrite', ( store ) => store.delete( session ) );
	}

	/** Returns the edits of this session; else the newest of another session with equal roots that are in no bundle. */
	async find( session: string, roots: string ): Promise< { edits: KeptEdits; own: boolean } | null > {
		const all = await this.all();
		const own = all.find( ( edits ) => session === edits.session );
		if ( own ) {
			return { edits: own, own: true };
		}
		const other = all.find( ( edits ) => roots === edits.roots && ! edits.kept );
		return other ? { edits: other, own: false } : null;
	}

	/** Returns all records, newest first. */
	private async all(): Promise< KeptEdits[] > {
		const found = await this.transaction< KeptEdits[] >( 'readonly', ( store ) => store.getAll() );
		return found.sort( ( a, b ) => b.time - a.time );
	}

	private async transaction< Result >( mode: IDBTransactionMode, act: ( store: IDBObjectStore ) => IDBRequest ): Promise< Result > {
		try {
			const database = await ( this.database ??= this.open() );
			return await new Promise< Result >( ( done, fail ) => {
				const transaction = database.transaction( STORE, mode );
				const request = act( transaction.objectStore( STORE ) );
				transaction.oncomplete = () => done( request.result as Result );
				transaction.onabort = () => fail( transaction.error );
				transaction.onerror = () => fail( transaction.error );
			} );
		} catch ( thrown ) {
			this.database = null;
			if ( 'QuotaExceededError' === ( thrown as { name?: string } | null )?.name ) {
				throw new PageError( 'wp_codebox_browser_storage_full', i18n.__( 'The browser has no space for your edits. They stay in this tab until you close it.', 'codebox' ), i18n.__( 'Keep them as a bundle before you close the tab.', 'codebox' ) );
			}
			throw new PageError( 'wp_codebox_browser_storage_denied', i18n.__( 'The browser does not let this page store your edits. They stay in this tab until you close it.', 'codebox' ), i18n.__( 'Keep them as a bundle before you close the tab.', 'codebox' ) );
		}
	}

	private open(): Promise< IDBDatabase > {
		return new Promise( ( done, fail ) => {
			if ( ! this.factory ) {
				fail( new Error( 'no IndexedDB' ) );
				return;
			}
			const request = this.factory.open( DATABASE, 1 );
			request.onupgradeneeded = () => request.result.createObjectStore( STORE, { keyPath: 'session' } );
			request.onsuccess = () => done( request.result );
			request.onerror = () => fail( request.error );
			request.onblocked = () => fail( new Error( 'blocked' ) );
		} );
	}
}
