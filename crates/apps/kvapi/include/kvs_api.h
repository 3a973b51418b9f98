/* The SNIA Key Value Storage API 1.1 of libkvapi, nandex's emulated key-value SSD.
 *
 * Every call returns KVS_SUCCESS or an error code; kvs_last_error returns a description of the error. A null pointer
 * for a required argument gives KVS_ERR_PARAM_INVALID. Options may be null: then the defaults apply. All calls may come
 * from any thread.
 *
 * Asynchronous calls take their arguments, return, and call post_fn on a thread of the library once the command has
 * ended. Keys and values to be stored are copied before the call returns; the structures themselves, and buffers to be
 * filled, stay the library's until post_fn is called. At most 256 commands of a key space wait; the next call waits for
 * one of them, and returns KVS_ERR_SYS_IO if it comes from post_fn.
 */
#ifndef KVS_API_H
#define KVS_API_H

#include <memory.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "kvs_const.h"
#include "kvs_result.h"
#include "kvs_struct.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Allocates memory, aligned to a power of two; returns null if there is none. `file` is not used. */
void *_kvs_zalloc(size_t size_bytes, size_t alignment, const char *file);
void *_kvs_malloc(size_t size_bytes, size_t alignment, const char *file);
void _kvs_free(void *buf, const char *file);
#define kvs_malloc(size, alignment) _kvs_malloc(size, alignment, __FILE__)
#define kvs_zalloc(size, alignment) _kvs_zalloc(size, alignment, __FILE__)
#define kvs_free(buf) _kvs_free(buf, __FILE__)

/* Returns the message of this thread's last failed call, or "". Valid until the thread's next call. */
const char *kvs_last_error(void);

/* Opens the drive in a file created by `nandex kvssd create`. A URI that begins with /dev/kvemul is a new drive in RAM,
 * which exists until it is closed, of 256 MiB, or of the bytes in the environment variable NANDEX_KVEMUL_BYTES. */
kvs_result kvs_open_device(char *URI, kvs_device_handle *dev_hd);
/* Closes the device and its key spaces, once all their commands have ended, and makes everything durable. */
kvs_result kvs_close_device(kvs_device_handle dev_hd);
kvs_result kvs_get_device_info(kvs_device_handle dev_hd, kvs_device *dev_info);
kvs_result kvs_get_device_capacity(kvs_device_handle dev_hd, uint64_t *dev_capacity);
/* From 0 to 10,000: hundredths of a percent. */
kvs_result kvs_get_device_utilization(kvs_device_handle dev_hd, uint32_t *dev_utilization);
/* Bytes programmed on flash for each stored byte. An extension of OpenMPDK's. */
kvs_result kvs_get_device_waf(kvs_device_handle dev_hd, float *waf);
kvs_result kvs_get_min_key_length(kvs_device_handle dev_hd, uint32_t *min_key_length);
kvs_result kvs_get_max_key_length(kvs_device_handle dev_hd, uint32_t *max_key_length);
kvs_result kvs_get_min_value_length(kvs_device_handle dev_hd, uint32_t *min_value_length);
kvs_result kvs_get_max_value_length(kvs_device_handle dev_hd, uint32_t *max_value_length);
kvs_result kvs_get_optimal_value_length(kvs_device_handle dev_hd, uint32_t *opt_value_length);

/* Creates a key space for `size` bytes of keys and values; 0 means only the device's limit. */
kvs_result kvs_create_key_space(kvs_device_handle dev_hd, kvs_key_space_name *key_space_name, uint64_t size,
                                kvs_option_key_space opt);
/* Deletes a key space with all its pairs, durably; open handles of it become unusable. */
kvs_result kvs_delete_key_space(kvs_device_handle dev_hd, kvs_key_space_name *key_space_name);
/* Lists the names of key spaces from number `index` on, counted from 1, as many as fit `buffer_size` bytes. */
kvs_result kvs_list_key_spaces(kvs_device_handle dev_hd, uint32_t index, uint32_t buffer_size,
                               kvs_key_space_name *names, uint32_t *ks_cnt);
kvs_result kvs_open_key_space(kvs_device_handle dev_hd, char *name, kvs_key_space_handle *ks_hd);
/* Closes it once all its commands have ended. */
kvs_result kvs_close_key_space(kvs_key_space_handle ks_hd);
/* `ks->name` may be null; otherwise its name_len is the length of its buffer. */
kvs_result kvs_get_key_space_info(kvs_key_space_handle ks_hd, kvs_key_space *ks);

kvs_result kvs_get_kvp_info(kvs_key_space_handle ks_hd, kvs_key *key, kvs_kvp_info *info);
/* If the buffer is too short, it is filled, actual_value_size is the length of the value, and nothing is deleted. */
kvs_result kvs_retrieve_kvp(kvs_key_space_handle ks_hd, kvs_key *key, kvs_option_retrieve *opt, kvs_value *value);
kvs_result kvs_retrieve_kvp_async(kvs_key_space_handle ks_hd, kvs_key *key, kvs_option_retrieve *opt, void *private1,
                                  void *private2, kvs_value *value, kvs_postprocess_function post_fn);
kvs_result kvs_store_kvp(kvs_key_space_handle ks_hd, kvs_key *key, kvs_value *value, kvs_option_store *opt);
kvs_result kvs_store_kvp_async(kvs_key_space_handle ks_hd, kvs_key *key, kvs_value *value, kvs_option_store *opt,
                               void *private1, void *private2, kvs_postprocess_function post_fn);
kvs_result kvs_delete_kvp(kvs_key_space_handle ks_hd, kvs_key *key, kvs_option_delete *opt);
kvs_result kvs_delete_kvp_async(kvs_key_space_handle ks_hd, kvs_key *key, kvs_option_delete *opt, void *private1,
                                void *private2, kvs_postprocess_function post_fn);
/* Deletes the pairs of a group. Bits of the pattern that the mask does not compare are ignored, here and below. */
kvs_result kvs_delete_key_group(kvs_key_space_handle ks_hd, kvs_key_group_filter *grp_fltr);
kvs_result kvs_delete_key_group_async(kvs_key_space_handle ks_hd, kvs_key_group_filter *grp_fltr, void *private1,
                                      void *private2, kvs_postprocess_function post_fn);
kvs_result kvs_exist_kv_pairs(kvs_key_space_handle ks_hd, uint32_t key_cnt, kvs_key *keys, kvs_exist_list *list);
kvs_result kvs_exist_kv_pairs_async(kvs_key_space_handle ks_hd, uint32_t key_cnt, kvs_key *keys, kvs_exist_list *list,
                                    void *private1, void *private2, kvs_postprocess_function post_fn);

kvs_result kvs_create_iterator(kvs_key_space_handle ks_hd, kvs_option_iterator *iter_op,
                               kvs_key_group_filter *iter_fltr, kvs_iterator_handle *iter_hd);
kvs_result kvs_delete_iterator(kvs_key_space_handle ks_hd, kvs_iterator_handle iter_hd);
kvs_result kvs_iterate_next(kvs_key_space_handle ks_hd, kvs_iterator_handle iter_hd, kvs_iterator_list *iter_list);
kvs_result kvs_iterate_next_async(kvs_key_space_handle ks_hd, kvs_iterator_handle iter_hd, kvs_iterator_list *iter_list,
                                  void *private1, void *private2, kvs_postprocess_function post_fn);

#ifdef __cplusplus
}
#endif

#endif
