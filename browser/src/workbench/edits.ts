/**
 * Stores the edits of the session in the browser, and brings them back after a reload.
 */
import type { PlaygroundClient } from '../engine/api';
import { pathOf, type ChangeSet, type Root } from './changes';
import { sha256 } from './digests';
import { Drafts, type KeptEdits, type KeptFile } from './drafts';
import { directory } from './paths';

/** Which stored files were written again. */
export interface Restored {
	readonly written: readonly string[];
	/** Files that were not written, because the session has another version than the one that was edited. */
	readonly conflicts: readonly string[];
	readonly unsaved: Readonly< Record< string, string > >;
}

export class Edits {
	private readonly unsaved = new Map< string, string >();
	/** Stored files that were not written, because the session has another version. They stay stored. */
	private readonly unresolved = new Map< string, KeptFile >();
	private changes: ChangeSet | null = null;
	private keptDigest = '';
	private last = '';
	private writing: Promise< void > = Promise.resolve();
	private readonly roots: string;
	/** Nothing is stored until the person has decided about edits stored earlier: storing would replace them. */
	private paused = true;

	constructor(
		private readonly session: string,
		roots: readonly Root[],
		private readonly failed: ( thrown: unknown ) => void,
		private readonly drafts: Drafts = new Drafts()
	) {
		this.roots = roots
			.map( ( root ) => root.target )
			.sort()
			.join( '\n' );
	}

	/** Whether this tab has unsaved text or changes that are in no bundle. */
	get atRisk(): boolean {
		return this.unsaved.size > 0 || ( null !== this.changes && this.changes.files.length > 0 && this.keptDigest !== this.changes.digest );
	}

	/** Returns stored edits for this session. */
	async stored(): Promise< { edits: KeptEdits; own: boolean } | null > {
		try {
			return await this.drafts.find( this.session, this.roots );
		} catch ( thrown ) {
			this.failed( thrown );
			return null;
		}
	}

	/** Ends the pause: stores the edits from now on. */
	resume(): void {
		this.paused = false;
		this.store();
	}

	/** Removes the stored edits of another session, which the person has declined. */
	async discard( edits: KeptEdits ): Promise< void > {
		await this.drafts.remove( edits.session ).catch( ( thrown ) => this.failed( thrown ) );
	}

	/** Sets the changes of the session and stores them. */
	set( changes: ChangeSet ): void {
		this.changes = changes;
		this.store();
	}

	/** Sets and stores the unsaved text of a file; null when it is saved. */
	edited( target: string, text: string | null ): void {
		if ( null === text ) {
			if ( ! this.unsaved.delete( target ) ) {
				return;
			}
		} else {
			this.unsaved.set( target, text );
		}
		this.store();
	}

	/** Returns text of an editor that was not saved. */
	textOf( target: string ): string | null {
		return this.unsaved.get( target ) ?? null;
	}

	/** Notes that these changes are stored in a bundle. */
	kept( changes: ChangeSet ): void {
		this.keptDigest = changes.digest;
		this.last = '';
		this.store();
	}

	/** Writes stored files into the sandbox. Without `all`, skips files that differ there from the version that was edited. */
	async restore( client: PlaygroundClient, roots: readonly Root[], edits: KeptEdits, all = false ): Promise< Restored > {
		const written: string[] = [];
		const conflicts: string[] = [];
		for ( const file of edits.files ) {
			const path = pathOf( file.target, roots );
			if ( ! path ) {
				continue;
			}
			const current = ( await client.fileExists( path ) ) ? await client.readFileAsBuffer( path ) : null;
			const hash = current ? await sha256( current ) : null;
			const done = file.after ? hash === ( await sha256( file.after ) ) : null === hash;
			if ( ! all && ! done && hash !== file.before ) {
				conflicts.push( file.target );
				this.unresolved.set( file.target, file );
				continue;
			}
			if ( ! done && file.after ) {
				await client.mkdirTree( directory( path ) );
				await client.writeFile( path, file.after );
			} else if ( ! done ) {
				await client.unlink( path );
			}
			written.push( file.target );
			this.unresolved.delete( file.target );
		}
		Object.entries( edits.unsaved ).forEach( ( [ target, text ] ) => this.unsaved.set( target, text ) );
		return { written, conflicts, unsaved: edits.unsaved };
	}

	/** Resolves when all edits so far are stored. */
	async settled(): Promise< void > {
		await this.writing;
	}

	private store(): void {
		const { changes } = this;
		if ( this.paused || ! changes ) {
			return;
		}
		const state = JSON.stringify( [ changes.digest, this.keptDigest, [ ...this.unsaved ], [ ...this.unresolved.keys() ] ] );
		if ( state === this.last ) {
			return;
		}
		this.last = state;
		const edits: KeptEdits = {
			session: this.session,
			roots: this.roots,
			time: Date.now(),
			files: [
				...changes.files.map( ( change ) => ( { target: change.target, before: change.file.beforeSha256 ?? null, after: change.after } ) ),
				...[ ...this.unresolved.values() ].filter( ( file ) => ! changes.files.some( ( change ) => file.target === change.target ) ),
			],
			unsaved: Object.fromEntries( this.unsaved ),
			kept: changes.digest === this.keptDigest && 0 === this.unsaved.size + this.unresolved.size,
		};
		this.writing = this.writing.then( () => this.drafts.put( edits ) ).catch( ( thrown: unknown ) => this.failed( thrown ) );
	}
}
