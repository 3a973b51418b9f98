/* The shared parts of the test programs. */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <kvs_api.h>

/* Ends the program, with the place, if an expression does not give this result. */
#define GIVES(expected, call)                                                                   \
  do {                                                                                          \
    int found_ = (int)(call);                                                                   \
    if (found_ != (int)(expected)) {                                                            \
      fprintf(stderr, "%s:%d: %s: expected 0x%x, found 0x%x: %s\n", __FILE__, __LINE__, #call,  \
              (int)(expected), found_, kvs_last_error());                                       \
      exit(1);                                                                                  \
    }                                                                                           \
  } while (0)

#define TRUE(what) GIVES(1, (what) ? 1 : 0)

static kvs_device_handle device;
static kvs_key_space_handle space;
static char space_name[] = "photos";

/* Opens a device, and a new key space in it. */
static void set_up(char *uri) {
  kvs_key_space_name name = {(uint32_t)strlen(space_name), space_name};
  kvs_option_key_space option = {KVS_KEY_ORDER_NONE};
  GIVES(KVS_SUCCESS, kvs_open_device(uri, &device));
  GIVES(KVS_SUCCESS, kvs_create_key_space(device, &name, 0, option));
  GIVES(KVS_SUCCESS, kvs_open_key_space(device, space_name, &space));
}

static kvs_key key_of(char *text) {
  kvs_key key = {text, (uint16_t)strlen(text)};
  return key;
}

#endif
